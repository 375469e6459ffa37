package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// reportSteady writes STEADY.md, and a picture for each cell beside its stored result.
func (c *steadyConfig) reportSteady() error {
	names, err := filepath.Glob(filepath.Join(c.results, "*.json"))
	if err != nil {
		return err
	}
	var cells []cellResult
	for _, name := range names {
		r, err := readCell(name)
		if err != nil {
			return err
		}
		cells = append(cells, r)
		if err := os.WriteFile(strings.TrimSuffix(name, ".json")+".svg", []byte(r.picture()), 0o644); err != nil {
			return err
		}
	}
	// What somebody has to say of the figures is kept in a file of its own.
	remarks, err := os.ReadFile(filepath.Join(c.results, "REMARKS.md"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var out strings.Builder
	fmt.Fprintf(&out,
		"# Steady load\n\nMade by `go run . -steady FOLDER` in `bench/`: each cell is minutes of constant load, not a "+
			"burst. Latencies are of what writes; those of gets are beside them. The picture of a cell is beside it: docs a "+
			"second, latency, and what the engine did by itself.\n\n%s\n%s\n", machine(c.dir), remarks)
	for _, load := range steadyLoads {
		rows := ""
		for _, r := range cells {
			if r.Load != load.name {
				continue
			}
			l, gets := r.Timeline.writes(), ""
			if load.fill {
				g := r.Timeline.Kinds["get"]
				gets = fmt.Sprintf(" %s | %s | %s | %s |", number(perSecond(r.Timeline.Reads)), number(g.at(0.5)),
					number(g.at(0.99)), number(g.at(1)/1e3))
			}
			rows += fmt.Sprintf("| [%s](%s) | %.0f s | %s | %s | %s | %s | %s | %d | %s / %s |%s\n", r.Engine,
				strings.TrimSuffix(cellName(r.Engine, r.Load), ".json")+".svg", r.Seconds,
				number(perSecond(r.Timeline.Docs)), number(l.at(0.5)), number(l.at(0.99)), number(l.at(0.999)), number(l.at(1)/1e3),
				r.Timeline.idle(), number(r.SyncBefore[0]), number(r.SyncAfter[0]), gets)
		}
		if rows == "" {
			continue
		}
		gets, lines := "", ""
		if load.fill {
			gets, lines = " gets/s | p50 µs | p99 µs | longest ms |", "---:|---:|---:|---:|"
		}
		fmt.Fprintf(&out,
			"## %s\n\n| | time | docs/s | p50 µs | p99 µs | p99.9 µs | longest ms | seconds without | fdatasync p50 µs before "+
				"/ after |%s\n|---|---:|---:|---:|---:|---:|---:|---:|---:|%s\n%s\n", load.title, gets, lines, rows)
	}
	fmt.Print("\n", out.String())
	return os.WriteFile(filepath.Join(c.results, "STEADY.md"), []byte(out.String()), 0o644)
}

// Sizes of the picture, and of the part that shows each series.
const (
	pictureWide, pictureHigh = 960, 420
	plotLeft, plotWide       = 70, 870
)

// picture draws throughput above latency, over time, with the background work of the engine.
func (r *cellResult) picture() string {
	var out strings.Builder
	fmt.Fprintf(&out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		pictureWide, pictureHigh)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="18">%s, %s</text>`+"\n", pictureWide,
		pictureHigh, plotLeft, escape(r.Engine), escape(r.Title))
	n := len(r.Timeline.Docs)
	if n == 0 {
		return out.String() + "</svg>\n"
	}
	x := func(second float64) float64 { return plotLeft + second/float64(n)*plotWide }
	for _, m := range r.Timeline.Marks {
		colour := map[string]string{"flushed": "#e8e8e8", "index written": "#9ecae1", "index merged": "#9ecae1",
			"compacted": "#9ecae1", "words merged": "#c5b0d5", "writers slowed": "#fdd0a2", "log rolled": "#74c476"}[m.Kind]
		if colour == "" {
			colour = "#f4a0a0"
		}
		from := max(m.At-m.Took/1e3, 0)
		fmt.Fprintf(&out,
			`<rect x="%.1f" y="30" width="%.1f" height="360" fill="%s" opacity="0.6"><title>%s, %.0f ms</title></rect>`+"\n",
			x(from), max(x(m.At)-x(from), 0.6), colour, escape(m.Kind), m.Took)
	}
	plot := func(top, high float64, title string, series [][]float64, colours []string) {
		most := 1.0
		for _, s := range series {
			for _, v := range s {
				most = max(most, v)
			}
		}
		fmt.Fprintf(&out,
			`<text x="%d" y="%.0f">%s, to %s</text><rect x="%d" y="%.0f" width="%d" height="%.0f" fill="none" stroke="#888"/>`+
				"\n", plotLeft, top-4, title, number(most), plotLeft, top, plotWide, high)
		for i, s := range series {
			fmt.Fprintf(&out, `<polyline fill="none" stroke="%s" points="`, colours[i])
			for k, v := range s {
				fmt.Fprintf(&out, "%.1f,%.1f ", x(float64(k)+0.5), top+high-v/most*high)
			}
			out.WriteString(`"/>` + "\n")
		}
	}
	docs := make([]float64, n)
	for i, v := range r.Timeline.Docs {
		docs[i] = float64(v)
	}
	plot(40, 150, "documents a second", [][]float64{docs}, []string{"#08519c"})
	plot(220, 150, "milliseconds: p50, p99, longest of each second",
		[][]float64{millis(r.Timeline.P50), millis(r.Timeline.P99), millis(r.Timeline.Most)},
		[]string{"#31a354", "#e6550d", "#bbbbbb"})
	fmt.Fprintf(&out,
		`<text x="%d" y="410">0 s</text><text x="%d" y="410" text-anchor="end">%d s; shaded: grey flush, blue index or compaction, violet words merged, orange writers slowed, green next file of the log, red other</text></svg>`+"\n", plotLeft, plotLeft+plotWide, n)
	return out.String()
}

func millis(us []float64) []float64 {
	out := make([]float64, len(us))
	for i, v := range us {
		out[i] = v / 1e3
	}
	return out
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
