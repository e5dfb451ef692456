"""What every child that imports a framework shares."""
