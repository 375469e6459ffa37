package memorytool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
)

const (
	maxLines    = 999_999 // maximum number of lines of a file in a view: line numbers have six digits
	folderDepth = 2       // number of levels that the view of a folder shows
)

func (t *Tool) view(ctx context.Context, args *input) (Result, error) {
	p, err := t.place(*args.Path)
	if err != nil {
		return Result{}, err
	}
	if !p.root {
		n, err := t.notes.Read(ctx, p.path)
		if err == nil {
			return t.file(p, &n, args.ViewRange)
		}
		if !errors.Is(err, varve.ErrNotFound) {
			return Result{}, err
		}
	}
	text, err := t.folder(ctx, p)
	return Result{Text: text}, err
}

// entry is a file or a folder in the view of a folder.
type entry struct {
	path   string // path relative to the viewed folder
	size   int64
	folder bool
}

// folder returns the view of a folder: its files and folders, two levels deep, with their sizes. /memories exists even
// if there are no files.
func (t *Tool) folder(ctx context.Context, p place) (string, error) {
	var list []entry
	size, any := int64(0), p.root
	parents := map[string]int{} // where they are in list
	for e, err := range t.notes.List(ctx, p.path, folderDepth) {
		if err != nil {
			return "", err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(e.Path, p.path), "/")
		if p.root && t.hides(rel) {
			continue
		}
		size, any = size+e.Size, true
		if hidden(rel) {
			continue
		}
		if parent, _, deeper := strings.Cut(rel, "/"); deeper {
			at, ok := parents[parent]
			if !ok {
				at = len(list)
				parents[parent] = at
				list = append(list, entry{path: parent, folder: true})
			}
			list[at].size += e.Size
		}
		list = append(list, entry{rel, e.Size, e.Folder})
	}
	if !any {
		return "", &refused{text: "The path " + p.shown + " does not exist. Please provide a valid path."}
	}
	slices.SortFunc(list, func(a, b entry) int {
		return slices.Compare(strings.Split(a.path, "/"), strings.Split(b.path, "/"))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "Here're the files and directories up to 2 levels deep in %s, excluding hidden items and "+
		"node_modules:\n%s\t%s", p.shown, sizeText(size), p.shown)
	for _, e := range list {
		fmt.Fprintf(&b, "\n%s\t%s/%s", sizeText(e.size), p.shown, e.path)
		if e.folder {
			b.WriteByte('/')
		}
	}
	return b.String(), nil
}

// hidden reports whether the view of a folder omits the file or folder at this path.
func hidden(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(segment, ".") || segment == "node_modules" {
			return true
		}
	}
	return false
}

// sizeText returns a number of bytes in the form that the tool uses: 0B, 512B, 1.5K, 2M.
func sizeText(n int64) string {
	if n == 0 {
		return "0B"
	}
	const units = "BKMG"
	i := min((bits.Len64(uint64(n))-1)/10, len(units)-1)
	if unit := int64(1) << (10 * i); n%unit != 0 {
		return fmt.Sprintf("%.1f%c", float64(n)/float64(unit), units[i])
	}
	return fmt.Sprintf("%d%c", n>>(10*i), units[i])
}

// file returns the answer of the command view for the file p, whose content is n: its lines with their numbers, or the
// image that the file contains. r is the requested range of lines; nil means all lines.
func (t *Tool) file(p place, n *varve.Note, r *lines) (Result, error) {
	if media := imageType(n.Content); media != "" {
		return Result{Text: fmt.Sprintf("Here's the image %s.", p.shown), Image: &Image{media, n.Content}}, nil
	}
	count := note.Lines(n.Content)
	if count > maxLines {
		return Result{}, &refused{text: "File " + p.shown + " exceeds maximum line limit of 999,999 lines."}
	}
	first, last := 1, count
	if r != nil {
		first = max(r.first, 1)
		if r.last != -1 {
			last = min(r.last, count)
		}
		if first > max(count, 1) || r.last != -1 && r.last < first {
			return Result{}, &refused{text: fmt.Sprintf("%sInvalid `view_range` parameter: [%d, %d]. It should be within the "+
				"range of lines of the file: [1, %d]", errorPrefix, r.first, r.last, count)}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Here's the content of %s with line numbers:", p.shown)
	shown, cut := numbered(&b, n.Content, first, last, t.options.ViewLimit)
	switch {
	case shown < last && shown >= first:
		fmt.Fprintf(&b, "\nThe file has %d lines; to see the rest, use view_range [%d, -1].", count, shown+1)
	case cut:
		fmt.Fprintf(&b, "\nThis line of the file is longer than %d characters, and is not shown whole.", t.options.ViewLimit)
	}
	if !utf8.Valid(n.Content) {
		b.WriteString("\nThe file has bytes that are not UTF-8. They are shown as \uFFFD, and kept as they are.")
	}
	return Result{Text: b.String()}, nil
}

// numbered writes the lines from first to last with their numbers, each after a line break. It writes as many lines as
// fit into limit characters, but at least one. shown is the number of the last line that it wrote. cut reports whether
// it shortened that line.
func numbered(b *strings.Builder, data []byte, first, last, limit int) (shown int, cut bool) {
	shown, n, used := first-1, 0, 0
	for line := range bytes.Lines(data) {
		if n++; n < first {
			continue
		}
		if n > last {
			break
		}
		text := strings.ToValidUTF8(string(bytes.TrimSuffix(line, []byte("\n"))), "\uFFFD")
		length := utf8.RuneCountInString(text)
		if used += length + len("     1\t\n"); limit >= 0 && used > limit {
			if n > first {
				return shown, false
			}
			text, cut = string([]rune(text)[:min(limit, length)]), length > limit
		}
		fmt.Fprintf(b, "\n%6d\t%s", n, text)
		shown = n
		if cut {
			break
		}
	}
	return shown, cut
}

// imageType returns the media type of an image of a kind that the API accepts, "" for any other content.
func imageType(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
