package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine returns a description of the machine on which the numbers were measured.
func machine(dir string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "- %s, %d cores, %s memory\n", field("/proc/cpuinfo", "model name"), runtime.NumCPU(),
		field("/proc/meminfo", "MemTotal"))
	fmt.Fprintf(&out, "- %s %s, %s, %s\n", runtime.GOOS, said("uname", "-r"), runtime.GOARCH, runtime.Version())
	fmt.Fprintf(&out, "- disk: %s\n", said("df", "--output=source,fstype,size", dir))
	fmt.Fprintf(&out, "- %s\n", time.Now().UTC().Format(time.DateOnly))
	return out.String()
}

// field returns the first value of a name in a file of "name : value" lines.
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return "unknown"
}

// said returns the last line that a command prints.
func said(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(strings.Fields(lines[len(lines)-1]), " ")
}
