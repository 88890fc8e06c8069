"""People: who there is, who is asked, who may decide for whom, and how they are told. What they do is decided by the machine."""
