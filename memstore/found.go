package memstore

// Explanation is what the score of a hit is made of.
type Explanation struct {
	// By words the score, before it is raised, is Own, of the memory and its neighbours, plus Session, three
	// tenths of the best three of its session. Both are BM25F, also where a vector was given as well.
	Own, Session float64
	Words        []WordShare // in the order of the query, those that the memory or a neighbour has
	Similarity   float64     // by vector: the cosine, or 1/(1+d²)

	Recency, Importance float64 // by how much these two of the query have raised the score
}

// WordShare is what one word of a query adds to Explanation.Own.
type WordShare struct {
	Word   string // as it is looked for: a stem
	Score  float64
	Near   float64  // how much of Score the neighbours in the session give, from 0 to 1
	Fields []string // where the memory itself has it
}

// Fragment is the piece of a content that has the most of the words of a query.
type Fragment struct {
	Text  string
	From  int      // where it begins in the content, in bytes
	Cut   bool     // more of the content is behind it
	Marks [][2]int // the words of the query in Text: from and to, in bytes
}
