package servicecmd

// ownerOf: there is no systemd here.
func ownerOf(string) (string, error) { return "", nil }
