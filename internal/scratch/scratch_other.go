//go:build !linux

package scratch

func isMemory(string) bool { return false }

func inMemory() (dir string, remove func(), ok bool) { return "", nil, false }
