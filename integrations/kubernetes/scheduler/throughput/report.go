package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// student has Student's t for a two-sided interval of 95 %, by the degrees of freedom from 1 on. The last one stands for more, for which
// t falls to 1.96 at most.
var student = [...]float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// difference is the mean of relative differences, and half of its 95 % interval: NaN for one difference.
type difference struct {
	mean, half float64
}

// compare returns the relative difference of values from those of the same rounds. A disturbance of a whole round counts on both sides.
func compare(base, values []float64) difference {
	differences := make([]float64, 0, len(values))
	for round, value := range values {
		differences = append(differences, value/base[round]-1)
	}
	average, squares := mean(differences), 0.0
	for _, each := range differences {
		squares += (each - average) * (each - average)
	}
	freedom := len(differences) - 1
	if freedom == 0 {
		return difference{average, math.NaN()}
	}
	deviation := math.Sqrt(squares / float64(freedom))
	return difference{average, student[min(freedom, len(student))-1] * deviation / math.Sqrt(float64(len(differences)))}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

// String returns the difference in percent.
func (d difference) String() string {
	if math.IsNaN(d.half) {
		return fmt.Sprintf("%+.2f %%", 100*d.mean)
	}
	return fmt.Sprintf("%+.2f %% ± %.2f", 100*d.mean, 100*d.half)
}

// report writes the means of all modes, with the lowest and the highest value of each, and their differences from the default mode.
func report(writer io.Writer, figures map[string][]figure) {
	for _, column := range []struct {
		name  string
		value func(figure) float64
	}{
		{"pods/s", func(f figure) float64 { return f.podsPerSecond }},
		{"processor time, ms/pod", func(f figure) float64 { return f.processor }},
	} {
		of := func(mode string) []float64 {
			var values []float64
			for _, each := range figures[mode] {
				values = append(values, column.value(each))
			}
			return values
		}
		fmt.Fprintf(writer, "%-26s %10s %22s  %s\n", column.name, "mean", "lowest to highest", "difference, 95 % interval")
		for _, mode := range modes {
			values := of(mode)
			fmt.Fprintf(writer, "%-26s %10.2f %11.2f %10.2f", mode, mean(values), slices.Min(values), slices.Max(values))
			if mode != modes[0] {
				fmt.Fprintf(writer, "  %v", compare(of(modes[0]), values))
			}
			fmt.Fprintln(writer)
		}
	}
}
