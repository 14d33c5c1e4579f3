"""A local model behind HTTP: what is asked (`requests`), how it is answered (`app`), and the process (`run`)."""
