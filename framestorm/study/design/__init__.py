"""What is asked for: study.yml read and checked, its points, and the folder in which a study is kept."""
