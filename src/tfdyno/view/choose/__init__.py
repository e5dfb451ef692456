"""The answers of estimate and advise as text, JSON and pages."""
