"""Multi-label methods compared on equal terms: rules, methods, a resumable run, and the page of its rows."""
