"""No knobs: calibration, the bank of step sizes, the slow views that score, the rescue from lock-out."""
