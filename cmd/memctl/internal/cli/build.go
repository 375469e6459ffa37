package cli

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/formats"
)

// release, commit and date describe the build. A release sets them with -ldflags "-X …". In other builds they are
// empty, and ThisBuild uses the information that the Go toolchain has recorded.
var release, commit, date string

// build describes this program.
type build struct {
	Version  string         `json:"version"`
	Revision string         `json:"revision,omitempty"`
	Modified bool           `json:"modified,omitempty"`
	Date     string         `json:"date,omitempty"` // date of the commit
	Go       string         `json:"go"`
	System   string         `json:"system"`
	Formats  map[string]int `json:"formats"` // the highest version of each format that this build reads and writes
	Features []string       `json:"features"`
}

func ThisBuild() *build {
	b := &build{Version: "(devel)", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Formats: map[string]int{}, Features: formats.Features()}
	for _, f := range formats.All() {
		b.Formats[f.Name] = f.Writes
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.noted(info)
	}
	if release != "" {
		b.Version = release
	}
	if commit != "" {
		b.Revision, b.Modified = commit, false
	}
	if date != "" {
		b.Date = date
	}
	return b
}

// pseudo matches the end of a version that go install assigns to a commit without a tag: the time of the commit in
// UTC, and twelve digits of its hash.
var pseudo = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(?:\+dirty)?$`)

// noted sets what the Go toolchain has recorded in the program. In a program built from a checkout this is the commit,
// its date, and whether files were modified. In a program from go install MODULE@VERSION it is only the version.
func (b *build) noted(info *debug.BuildInfo) {
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	if m := pseudo.FindStringSubmatch(b.Version); m != nil {
		b.Revision = m[2]
		if at, err := time.Parse("20060102150405", m[1]); err == nil {
			b.Date = at.Format(time.RFC3339)
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
}

// Line returns the output of memctl --version, which is also the first line of memctl version.
func (b *build) Line() string { return "memctl " + b.Version + " " + b.Go + " " + b.System + "\n" }

// Print writes the description of the build, one line for each part.
func (b *build) Print(w io.Writer) {
	io.WriteString(w, b.Line())
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s %s\n", Pad(name, 8), text)
		}
	}
	revision := b.Revision
	if b.Modified {
		revision += ", modified"
	}
	row("commit", revision)
	row("date", b.Date)
	var list []string
	for _, f := range formats.All() {
		list = append(list, fmt.Sprintf("%s %d", f.Name, f.Writes))
	}
	row("formats", strings.Join(list, ", "))
	row("features", strings.Join(b.Features, ", "))
}
