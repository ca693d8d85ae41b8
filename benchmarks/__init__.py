"""Speed, shown as ratios against peers measured in the same run: ``make bench`` or ``python -m benchmarks NAME``."""
