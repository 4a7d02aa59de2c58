package kit

import "testing"

func same(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestClamp(t *testing.T) {
	same(t, Clamp(-5, 0, 10), 0)
	same(t, Clamp(5, 0, 10), 5)
	same(t, Clamp(15, 0, 10), 10)
}

func TestLastPage(t *testing.T) {
	same(t, LastPage(0, 10), 1)
	same(t, LastPage(10, 10), 1)
	same(t, LastPage(11, 10), 2)
}

func TestIsLeap(t *testing.T) {
	if IsLeap(1900) || !IsLeap(2000) || IsLeap(2023) || !IsLeap(2024) {
		t.Error("wrong year")
	}
}

func TestMedian(t *testing.T) {
	if Median([]float64{3, 1, 2}) != 2 || Median([]float64{4, 1, 3, 2}) != 2.5 {
		t.Error("wrong median")
	}
}

func TestCountWords(t *testing.T) { same(t, CountWords("one two  three"), 3) }

func TestDigitSum(t *testing.T) {
	same(t, DigitSum(0), 0)
	same(t, DigitSum(905), 14)
	same(t, DigitSum(-12), 3)
}

func TestRunLength(t *testing.T) {
	same(t, RunLength(""), 0)
	same(t, RunLength("abbbc"), 3)
	same(t, RunLength("aa"), 2)
}

func TestOverlap(t *testing.T) {
	same(t, Overlap(0, 5, 3, 9), 2)
	same(t, Overlap(0, 1, 3, 9), 0)
}
