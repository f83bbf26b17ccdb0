"""Generators of files that are made to hang, flood, fool or crash whoever reads them."""
