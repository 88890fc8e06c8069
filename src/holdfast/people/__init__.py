"""People: who there is, who is asked, who may decide for whom. Runs ask by errands; what people do is decided by the machine."""
