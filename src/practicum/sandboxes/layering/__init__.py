"""How layers are made: from images, locks and recipes; where they are kept; how stacked folders read as one."""
