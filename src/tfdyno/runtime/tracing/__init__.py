"""What the trace of a step needs where its data or XLA leave something open."""
