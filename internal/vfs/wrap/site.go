package wrap

import (
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// sites is a cache that maps program counters to call sites. "" stands for a call site inside the vfs packages.
type sites struct{ m sync.Map }

// caller returns the innermost frame outside the vfs packages.
func (s *sites) caller() string {
	// It is usually a few frames up, and the simulators ask for every operation.
	var pcs [24]uintptr
	for skip, most := 0, 8; ; skip, most = skip+most, len(pcs) {
		n := runtime.Callers(3+skip, pcs[:most])
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
		if n < most || skip > 0 {
			return "?"
		}
	}
}

func name(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	test := strings.HasSuffix(f.File, "_test.go")
	if strings.Contains(f.Function, "/internal/vfs") && !test || strings.HasPrefix(f.Function, "runtime.") ||
		strings.HasPrefix(f.Function, "io.") {
		return ""
	}
	dir, file := path.Split(f.File)
	return path.Base(dir) + "/" + file + ":" + strconv.Itoa(f.Line)
}
