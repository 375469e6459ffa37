package fuzz

import (
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// sites remembers what program counters stand for.
type sites map[uintptr]string

// place is where an operation was called from, outside the vfs packages. Op.Site
// would name this package: its hooks stand between.
func (s sites) place(op *wrap.Op) sim.Place {
	var pcs [40]uintptr
	n := runtime.Callers(2, pcs[:])
	below := false // we have passed package wrap
	for _, pc := range pcs[:n] {
		at, ok := s[pc]
		if !ok {
			f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
			dir, file := path.Split(f.File)
			switch {
			case strings.Contains(f.Function, "/internal/vfs"):
				at = "vfs"
			case strings.HasPrefix(f.Function, "runtime."), strings.HasPrefix(f.Function, "io."):
			default:
				at = path.Base(dir) + "/" + file + ":" + strconv.Itoa(f.Line)
			}
			s[pc] = at
		}
		switch {
		case at == "vfs":
			below = true
		case below && at != "":
			return sim.Place{Site: at, Kind: op.Kind}
		}
	}
	return sim.Place{Site: "?", Kind: op.Kind}
}
