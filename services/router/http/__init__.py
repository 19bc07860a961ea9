"""HTTP surfaces of the router, over ``services.router.port``: no file here touches NATS, the fold or the planner."""
