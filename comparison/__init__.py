"""Multi-label methods compared on equal terms: rules, methods, a resumable run, and the page that is written from its rows."""
