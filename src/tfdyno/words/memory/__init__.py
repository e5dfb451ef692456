"""Memory figures and plans in words."""
