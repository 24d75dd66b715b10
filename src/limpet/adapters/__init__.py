"""limpet in the conventions of other libraries: river, scikit-learn, sktime. Each needs the extra of its name."""
