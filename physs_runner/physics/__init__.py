"""Physics stated as text: expressions, equations and where they hold."""
