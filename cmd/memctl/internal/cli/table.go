package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"

	"github.com/varve-db/varve/cmd/memctl/internal/wrap"
)

// Column is a column of a table. Cells that are wider than Most columns of the screen (twice as many on a wide screen)
// are cut. If Most is 0, no cell is cut. The last column gets the rest of the screen's width.
type Column struct {
	Name  string
	Most  int
	Right bool // right-aligned, for numbers
}

// table is a list printed as a table. Its first rows are kept until the widths of the columns are known; a table of
// more than tableHeld rows then shows whole ids, and prints each further row at once.
type table struct {
	a       *App
	lines   lineSource // the source of all ids of the store; nil: ids are not shortened
	columns []Column
	id      int // index of the column with the id
	rows    [][]string
	ids     []string // "" for one that is shown as it is
	widths  []int    // not nil: the widths are known, and rows are printed at once
}

const (
	tableHeld = 1000
	wide      = 120 // number of columns of a wide screen
)

func (t *table) add(ctx context.Context, id string, cells []string) error {
	t.rows, t.ids = append(t.rows, cells), append(t.ids, id)
	switch {
	case t.widths != nil:
		return t.write(ctx)
	case len(t.rows) > tableHeld:
		t.lines = nil
		return t.begin(ctx)
	}
	return nil
}

// end prints the rows that were kept.
func (t *table) end(ctx context.Context) error {
	if t.widths != nil || len(t.rows) == 0 {
		return nil
	}
	return t.begin(ctx)
}

// begin determines the widths, and prints the header and the rows that were kept.
func (t *table) begin(ctx context.Context) error {
	if t.lines != nil && t.a.Out.Screen { // a program gets whole ids
		short, err := Endings(ctx, t.lines, slices.DeleteFunc(slices.Clone(t.ids), func(id string) bool { return id == "" }))
		if err != nil {
			return err
		}
		for i, id := range t.ids {
			if id != "" {
				t.rows[i][t.id] = short[id]
			}
		}
	}
	t.widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		for _, row := range t.rows {
			t.widths[i] = max(t.widths[i], uniseg.StringWidth(row[i]))
		}
		if c.Most > 0 {
			most := c.Most
			if t.a.width() >= wide {
				most *= 2
			}
			t.widths[i] = min(t.widths[i], most)
		}
		if t.widths[i] > 0 {
			t.widths[i] = max(t.widths[i], len(c.Name))
		}
	}
	last := len(t.columns) - 1
	left := t.a.width()
	for _, w := range t.widths[:last] {
		if w > 0 {
			left -= w + 2
		}
	}
	t.widths[last] = max(left, wrap.Least)
	head := make([]string, len(t.columns))
	for i, c := range t.columns {
		head[i] = c.Name
	}
	t.a.Out.InColour(Bold, strings.TrimRight(strings.Join(t.cells(head), "  "), " "))
	fmt.Fprintln(t.a.Out)
	return t.write(ctx)
}

// cells returns the cells of a row as they are shown, each padded or cut to the width of its column.
func (t *table) cells(row []string) (shown []string) {
	for i, cell := range row {
		w := t.widths[i]
		switch {
		case w == 0: // the column is empty in all rows
			continue
		case i == len(row)-1:
			cell = Cut(cell, w)
		default:
			if t.columns[i].Most > 0 {
				cell = Cut(cell, w)
			}
			if t.columns[i].Right {
				cell = strings.Repeat(" ", max(w-uniseg.StringWidth(cell), 0)) + cell
			} else {
				cell = Pad(cell, w)
			}
		}
		shown = append(shown, cell)
	}
	return shown
}

func (t *table) write(ctx context.Context) error {
	for _, row := range t.rows {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at := t.id
		for i := range t.id {
			if t.widths[i] == 0 {
				at--
			}
		}
		for i, cell := range t.cells(row) {
			if i > 0 {
				fmt.Fprint(t.a.Out, "  ")
			}
			if i == at {
				t.a.Out.InColour(Dim, cell)
			} else {
				t.show(cell)
			}
		}
		fmt.Fprintln(t.a.Out)
	}
	t.rows, t.ids = t.rows[:0], t.ids[:0]
	return nil
}

// MarkOn and MarkOff enclose the part of a cell that is shown in bold. They have no width. Text from Printable
// never contains them.
const (
	MarkOn  = "\x01"
	MarkOff = "\x02"
)

func (t *table) show(cell string) {
	plain, rest, marked := strings.Cut(cell, MarkOn)
	for fmt.Fprint(t.a.Out, plain); marked; fmt.Fprint(t.a.Out, plain) {
		var bold string
		bold, rest, _ = strings.Cut(rest, MarkOff)
		t.a.Out.InColour(Bold, bold)
		plain, rest, marked = strings.Cut(rest, MarkOn)
	}
}

// width returns the width of the screen in columns; without a terminal, the value of the variable COLUMNS.
func (a *App) width() int {
	if fd, ok := Terminal(a.Out.Stream); ok {
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			return width
		}
	}
	if n, err := strconv.Atoi(a.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 80
}
