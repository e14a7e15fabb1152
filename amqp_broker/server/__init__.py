"""The shell around the core: sockets, the clock, the loop and the signals."""
