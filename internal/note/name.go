package note

import (
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Names converts between the paths of notes and the paths of their files below the folder notes/, by the rules of one
// operating system. The package comment describes the rules. Names implements kind.Paths.
type Names struct {
	windows bool
}

// System returns the Names of the operating system that the program runs on.
func System() Names { return On(runtime.GOOS) }

// On returns the Names of the operating system goos.
func On(goos string) Names { return Names{goos == "windows"} }

const (
	ownFolder  = ".varve" // name of the folder of the sidecars, in the folder of notes
	sidecarEnd = ".json"
	more       = "%+" // suffix of a part of a long name, and prefix of the next part, in which the name continues
	device     = "%=" // prefix of a name that Windows would otherwise treat as a device
	mostName   = 255  // maximum number of bytes in the name of a file
)

// Path returns the path of the file of a note or of a sidecar, given by its id in the log.
func (n Names) Path(id string) string {
	path, sidecar := strings.CutPrefix(id, sidecarHead)
	if !sidecar && n.plain(path) {
		return path
	}
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

// plain reports whether Path certainly does not change the path of a note. If plain returns false, Path may change the
// path or not.
func (n Names) plain(path string) bool {
	return !n.windows && len(path) <= mostName && path != "" && path[0] != '.' && !strings.ContainsAny(path, `%\`) &&
		!strings.Contains(path, "/.")
}

// ID returns the id of the note or of the sidecar whose file has the given path. If the path is not the path of such a
// file, ok is false, and id is the path itself.
func (n Names) ID(path string) (id string, ok bool) {
	id, ok = n.read(path)
	if ok = ok && n.Path(id) == path && checkID(id) == nil; !ok {
		return path, false
	}
	return id, true
}

// read reverses Path, without checking that the result is a valid id. ok is false if the path cannot be a result of
// Path.
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

// Normal returns a path in Unicode's normal form C for the path of a file in another form: names of files that were
// created on macOS may be in form D. It returns false if the path is in form C already, or if the path in form C is
// not that of a document. It implements kind.Normalizing.
func (n Names) Normal(path string) (string, bool) {
	if norm.NFC.IsNormalString(path) {
		return "", false
	}
	path = norm.NFC.String(path)
	_, ok := n.ID(path)
	return path, ok
}

// IsDocument reports whether the file at a path may be a note or a sidecar. Apart from sidecars, a path with an element
// that begins with a dot is not that of a document.
func (n Names) IsDocument(path string) bool {
	if _, ok := n.ID(path); ok {
		return true
	}
	return !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.")
}

// IsOwn reports whether the store itself could create a file at a path. If folder is true, it reports whether the
// store could create a folder there.
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

// IsPath reports whether path is the path of the file of the note or sidecar with this id on any operating system.
func (n Names) IsPath(path, id string) bool {
	return path == n.Path(id) || path == On("linux").Path(id) || path == On("windows").Path(id)
}

// Tree returns true: notes are in a tree of folders.
func (n Names) Tree() bool { return true }

// escape returns the name of the file or folder for a segment of a path. The name may be too long for one file: see
// appendName.
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

// unescape reverses escape.
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

// escaped reports whether a byte of a segment is escaped. first and last report whether it is the first or last
// byte of the segment.
func (n Names) escaped(c byte, first, last bool) bool {
	switch {
	case c == '.' && first, c == '\\':
		return true
	case !n.windows:
		return false
	}
	return strings.IndexByte(`<>:"|?*`, c) >= 0 || last && (c == '.' || c == ' ')
}

// token parses the escape that begins with the percent sign at name[off]. Such an escape stands for one byte, for the
// constant more, or for the constant device. It consists of the percent sign, any number of "25", and then two
// hexadecimal digits (a byte), or "+" (more), or "=" (device). c is the escaped byte, or 0 for more and device. end is
// the offset after the escape, or 0 if name has no escape at off.
func (n Names) token(name string, off int) (end int, c byte) {
	end = off + 1
	for strings.HasPrefix(name[end:], "25") {
		end += 2
	}
	rest := name[end:]
	switch {
	case strings.HasPrefix(rest, more[1:]) && (off == 0 || len(rest) == 1),
		strings.HasPrefix(rest, device[1:]) && off == 0 && n.windows:
		return end + 1, 0
	case len(rest) < 2:
		return 0, 0
	}
	hi, lo := strings.IndexByte(hexDigits, rest[0]), strings.IndexByte(hexDigits, rest[1])
	if hi < 0 || lo < 0 || !n.escaped(byte(hi<<4|lo), off == 0, len(rest) == 2) {
		return 0, 0
	}
	return end + 2, byte(hi<<4 | lo)
}

// isDevice reports whether Windows treats a name as a device, whatever its extension is.
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

// appendName appends the name of a segment to a path. A name that is too long for one file is cut into several
// elements, never within a character.
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
