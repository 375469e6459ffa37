package doctorcmd

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// system describes the machine.
type system struct {
	OS        string `json:"os"`
	Kernel    string `json:"kernel,omitempty"`
	CPUs      int    `json:"cpus"`
	Memory    int64  `json:"memory_bytes,omitempty"`
	Container bool   `json:"container"`
	OpenFiles int64  `json:"open_files,omitempty"`      // limit of open files of this process
	HardFiles int64  `json:"open_files_hard,omitempty"` // limit of open files to which a process may raise it
	Watches   int64  `json:"watches,omitempty"`         // maximum number of folders that a user may watch
	Instances int64  `json:"watch_instances,omitempty"`
}

func systemNow() system {
	s := system{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Kernel: kernel()}
	s.OpenFiles, s.HardFiles = cli.OpenFiles()
	if runtime.GOOS != "linux" {
		return s
	}
	for _, name := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(name); err == nil {
			s.Container = true
		}
	}
	s.Watches = numberIn("/proc/sys/fs/inotify/max_user_watches")
	s.Instances = numberIn("/proc/sys/fs/inotify/max_user_instances")
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		if kb, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 10, 64)
			s.Memory = n << 10
		}
	}
	return s
}

func numberIn(file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// locked describes a lock on a file of the store that processes hold or wait for.
type locked struct {
	Name string `json:"name"`
	// ids of the processes that hold the lock; 0 for a process whose id the system does not show
	Holders []int `json:"holders"`
	Waiting int   `json:"waiting"`
}

// locksIn returns the locks on some files, given by their inodes, from the text of /proc/locks. Systems other
// than Linux have no such list.
func locksIn(text string, files map[uint64]string) (list []locked) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // 1: [->] FLOCK ADVISORY WRITE 4711 fd:01:123456 0 EOF
		waits := len(f) > 1 && f[1] == "->"
		if waits {
			f = append(f[:1], f[2:]...)
		}
		if len(f) < 6 {
			continue
		}
		_, rest, _ := strings.Cut(f[5], ":")
		_, inode, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseUint(inode, 10, 64)
		name, known := files[n]
		if err != nil || !known {
			continue
		}
		at := -1
		for i := range list {
			if list[i].Name == name {
				at = i
			}
		}
		if at < 0 {
			list, at = append(list, locked{Name: name, Holders: []int{}}), len(list)
		}
		pid, _ := strconv.Atoi(f[4])
		if waits {
			list[at].Waiting++
		} else {
			list[at].Holders = append(list[at].Holders, max(pid, 0))
		}
	}
	return list
}
