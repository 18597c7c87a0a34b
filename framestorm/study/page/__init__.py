"""What a study leaves to be read, made of summary.json alone: index.html with its charts, and junit.xml."""
