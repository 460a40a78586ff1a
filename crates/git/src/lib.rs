//! Repositories, trees, refs by compare-and-swap; knows no kinds.
