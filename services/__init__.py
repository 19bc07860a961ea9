"""The processes of Headrace. No service imports another; all may import services.runtime and schemas."""
