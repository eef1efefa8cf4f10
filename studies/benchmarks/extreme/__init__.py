"""Evidence on tens of thousands of labels, beside other programs."""
