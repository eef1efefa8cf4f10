"""How much a file may claim before it is refused."""

MAX_BYTES = 4 << 30  # of a file once unpacked
MAX_DENSE_CELLS = 1 << 29  # of a matrix that has to be dense: 4 GiB of float64
