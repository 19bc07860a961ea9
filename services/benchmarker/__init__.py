"""The benchmarker: finds out what nobody has asked yet. It never decides who answers a user, and never disturbs one."""
