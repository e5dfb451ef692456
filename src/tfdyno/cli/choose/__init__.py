"""Commands that choose: advise, estimate, memory, gpus, offers, calibrate."""
