"""The front door: `MissCNF` and `MissCNFImputer`, estimators of scikit-learn."""
