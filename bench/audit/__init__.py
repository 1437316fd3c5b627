"""Games against every method of ours and against peers: what can be shown of their claims."""
