"""Memory beyond one step: the allocator, plans, growth."""
