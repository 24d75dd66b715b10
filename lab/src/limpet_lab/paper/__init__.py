"""The paper, reproduced: one file for each table or figure; `limpet reproduce` runs them.

A result is a module with a TITLE and `run(context) → Result`; `runner.NAMES` lists them in the order of the paper.
"""
