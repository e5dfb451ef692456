"""Which operations of a step become one launch, and in which order the launches run."""
