package mcpserver

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/served"
)

// BenchmarkReadGraph is a whole answer over the transport, at 1,000 entities and as
// many relations.
func BenchmarkReadGraph(b *testing.B) {
	st, err := varve.Open(b.Context(), b.TempDir(), &varve.Options{NoBackground: true})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	batch := new(varve.Batch)
	for i := range 1000 {
		e := graph.Entity{Name: fmt.Sprint("entity ", i), Type: "kind", Observations: []string{"was seen at place 1", fmt.Sprint("weighs ", i, " grams")}}
		batch.Put(e.Memory(time.Unix(1, 0), nil))
		batch.Put(graph.Relation{From: e.Name, To: "entity 7", Type: "leads to"}.Memory(time.Unix(1, 0), nil))
	}
	if err := st.Apply(b.Context(), batch); err != nil {
		b.Fatal(err)
	}
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ended := make(chan error)
	go func() { ended <- New(served.Only(st), both).Run(b.Context(), Stdio(in, out, nil)) }()
	r := bufio.NewReaderSize(receive, 1<<20)
	ask := func(line string, answered bool) {
		if _, err := io.WriteString(send, line); err != nil {
			b.Fatal(err)
		}
		if answered {
			n, err := r.ReadBytes('\n')
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(n)))
		}
	}
	ask(hello, true)
	for i := 0; b.Loop(); i++ {
		ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read_graph"}}`+"\n", i+1), true)
	}
	if err := send.Close(); err != nil {
		b.Fatal(err)
	}
	<-ended
}
