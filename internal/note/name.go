package note

import (
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Names maps the paths of notes to paths of files below the folder of notes, and back. The package comment has the
// rules. It is a kind.Paths.
type Names struct {
	windows bool
}

// System returns the Names of the operating system on which the program runs.
func System() Names { return On(runtime.GOOS) }

// On returns the Names of an operating system.
func On(goos string) Names { return Names{goos == "windows"} }

const (
	ownFolder  = ".varve" // name of the sidecars' folder in the folder of notes
	sidecarEnd = ".json"
	more       = "%+" // text at the end of a part of a long name, after which the next part follows
	device     = "%=" // text before a name that Windows would treat as a device
	mostName   = 255  // maximum number of bytes in the name of a file
)

// Path returns the path of the file of a note, or of a sidecar, with this id in the log.
func (n Names) Path(id string) string {
	path, sidecar := strings.CutPrefix(id, sidecarHead)
	var b strings.Builder
	if sidecar {
		b.WriteString(ownFolder + "/")
	}
	for {
		segment, rest, more := strings.Cut(path, "/")
		name := n.escape(segment)
		if sidecar && !more {
			name = "." + name + sidecarEnd
		}
		appendName(&b, name)
		if !more {
			return b.String()
		}
		b.WriteByte('/')
		path = rest
	}
}

// ID returns the id of the note, or of the sidecar, whose file has this path. If the path belongs to neither, ok is
// false, and the id is the path itself, which CheckPath refuses or which is the path of another file.
func (n Names) ID(path string) (id string, ok bool) {
	id, ok = n.read(path)
	if ok = ok && n.Path(id) == path && checkID(id) == nil; !ok {
		return path, false
	}
	return id, true
}

// read is the inverse of Path. It does not verify that the result is a valid id.
func (n Names) read(path string) (id string, ok bool) {
	path, sidecar := strings.CutPrefix(path, ownFolder+"/")
	var segments []string
	name, goesOn := "", false
	for elem := range strings.SplitSeq(path, "/") {
		if goesOn {
			if elem, ok = strings.CutPrefix(elem, more); !ok {
				return "", false
			}
		}
		elem, goesOn = strings.CutSuffix(elem, more)
		if name += elem; !goesOn {
			segments, name = append(segments, name), ""
		}
	}
	last := len(segments) - 1
	if last < 0 || goesOn {
		return "", false
	}
	if sidecar {
		if segments[last], ok = strings.CutPrefix(segments[last], "."); !ok {
			return "", false
		}
		if segments[last], ok = strings.CutSuffix(segments[last], sidecarEnd); !ok {
			return "", false
		}
	}
	for i, s := range segments {
		segments[i] = n.unescape(s)
	}
	if id = strings.Join(segments, "/"); sidecar {
		id = sidecarHead + id
	}
	return id, true
}

// Normal returns the path in Unicode's normal form C of a file whose path is in another form. macOS, and files copied
// from there, may have names in form D. It implements kind.Normalizing.
func (n Names) Normal(path string) (string, bool) {
	if norm.NFC.IsNormalString(path) {
		return "", false
	}
	path = norm.NFC.String(path)
	_, ok := n.ID(path)
	return path, ok
}

// IsDocument reports whether a file at a path may be a note or a sidecar: no element begins with a dot, except
// those of sidecars.
func (n Names) IsDocument(path string) bool {
	if _, ok := n.ID(path); ok {
		return true
	}
	return !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.")
}

// IsOwn reports whether the store may give this path to a file or, with folder, to a folder.
func (n Names) IsOwn(path string, folder bool) bool {
	if !folder {
		_, ok := n.ID(path)
		return ok
	}
	if path == ownFolder {
		return true
	}
	// Some file in the folder: one with a short name, the end of a long name, which may have been cut before a long
	// character, and a sidecar of each.
	for _, name := range []string{"x", more + strings.Repeat("\U0001F600", 60), ".x" + sidecarEnd,
		more + strings.Repeat("\U0001F600", 60) + sidecarEnd} {
		if _, ok := n.ID(path + "/" + name); ok {
			return true
		}
	}
	return false
}

// IsPath reports whether a path is that of the file of a note or a sidecar on some system.
func (n Names) IsPath(path, id string) bool {
	return path == n.Path(id) || path == On("linux").Path(id) || path == On("windows").Path(id)
}

// Tree returns true: notes are in folders.
func (n Names) Tree() bool { return true }

// escape returns the file name for a segment of a path. The name may have any length.
func (n Names) escape(segment string) string {
	var b strings.Builder
	if n.windows && isDevice(segment) {
		b.WriteString(device)
	}
	for at := 0; at < len(segment); {
		c := segment[at]
		switch end := 0; {
		case n.escaped(c, at == 0, at == len(segment)-1):
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		case c == '%':
			if end, _ = n.token(segment, at); end > 0 {
				b.WriteString("%25" + segment[at+1:end])
				at = end
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
		at++
	}
	return b.String()
}

// unescape is the inverse of escape.
func (n Names) unescape(name string) string {
	if n.windows {
		name = strings.TrimPrefix(name, device)
	}
	var b strings.Builder
	for at := 0; at < len(name); {
		if name[at] == '%' {
			if end, c := n.token(name, at); end > 0 && strings.HasPrefix(name[at+1:], "25") {
				b.WriteString("%" + name[at+3:end])
				at = end
				continue
			} else if end > 0 && c != 0 {
				b.WriteByte(c)
				at = end
				continue
			}
		}
		b.WriteByte(name[at])
		at++
	}
	return b.String()
}

const hexDigits = "0123456789ABCDEF"

// escaped reports whether a byte of a segment must be written as an escape of two digits. first and last tell whether
// it is at the beginning or the end of the segment.
func (n Names) escaped(c byte, first, last bool) bool {
	switch {
	case c == '.' && first, c == '\\':
		return true
	case !n.windows:
		return false
	}
	return strings.IndexByte(`<>:"|?*`, c) >= 0 || last && (c == '.' || c == ' ')
}

// token returns the end of the escape that begins with the percent sign at offset at; 0 if there is none. An escape
// has any number of 25, and then either the two digits of a byte, which is returned as c, or one of the marks more and
// device, for which c is 0.
func (n Names) token(name string, at int) (end int, c byte) {
	end = at + 1
	for strings.HasPrefix(name[end:], "25") {
		end += 2
	}
	rest := name[end:]
	switch {
	case strings.HasPrefix(rest, more[1:]) && (at == 0 || len(rest) == 1),
		strings.HasPrefix(rest, device[1:]) && at == 0 && n.windows:
		return end + 1, 0
	case len(rest) < 2:
		return 0, 0
	}
	hi, lo := strings.IndexByte(hexDigits, rest[0]), strings.IndexByte(hexDigits, rest[1])
	if hi < 0 || lo < 0 || !n.escaped(byte(hi<<4|lo), at == 0, len(rest) == 2) {
		return 0, 0
	}
	return end + 2, byte(hi<<4 | lo)
}

// isDevice reports whether Windows treats a name as that of a device, whatever its extension is.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	switch port {
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "\u00b9", "\u00b2", "\u00b3":
		return ok
	}
	return false
}

// appendName appends a name to b. If the name is too long for one file, it is split into folders, never within a
// character.
func appendName(b *strings.Builder, name string) {
	for head := ""; ; head = more {
		if b.WriteString(head); len(head)+len(name) <= mostName {
			b.WriteString(name)
			return
		}
		cut := mostName - len(head) - len(more)
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		b.WriteString(name[:cut] + more + "/")
		name = name[cut:]
	}
}
