"""What can be seen of a running job from outside its processes, without stopping them for longer than a look takes."""
