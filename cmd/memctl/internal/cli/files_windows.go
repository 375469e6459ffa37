package cli

// OpenFiles returns 0 for both limits: Windows has none for a process.
func OpenFiles() (soft, hard int64) { return 0, 0 }
