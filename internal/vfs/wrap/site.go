package wrap

import (
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// sites remembers what a program counter stands for; "" is a frame inside vfs.
type sites struct{ m sync.Map }

// caller is the innermost frame outside the vfs packages.
func (s *sites) caller() string {
	var pcs [24]uintptr
	n := runtime.Callers(3, pcs[:])
	for _, pc := range pcs[:n] {
		v, ok := s.m.Load(pc)
		if !ok {
			v = name(pc)
			s.m.Store(pc, v)
		}
		if at := v.(string); at != "" {
			return at
		}
	}
	return "?"
}

func name(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	test := strings.HasSuffix(f.File, "_test.go")
	if strings.Contains(f.Function, "/internal/vfs") && !test || strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "io.") {
		return ""
	}
	dir, file := path.Split(f.File)
	return path.Base(dir) + "/" + file + ":" + strconv.Itoa(f.Line)
}
