"""What a competent user would write today with other libraries for the same questions: the peers of the benchmarks."""
