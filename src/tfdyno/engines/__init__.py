"""What starts programs: several processes on this machine that work as one."""
