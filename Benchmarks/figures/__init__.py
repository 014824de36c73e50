# SPDX-FileCopyrightText: The Door authors
# SPDX-License-Identifier: MIT
"""The figures that Benchmarks/bench prints, one module each; docs/benchmarks.md explains them."""
