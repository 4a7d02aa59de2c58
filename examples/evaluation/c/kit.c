#include "kit.h"

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

int clamp(int value, int low, int high) { return most(low, least(high, value)); }

int last_page(int total, int size) { return most(1, (total + size - 1) / size); }

int is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int median3(int a, int b, int c) { return most(least(a, b), least(most(a, b), c)); }

int count_words(const char *text) {
    int words = 0, inside = 0;
    for (; *text; text++) {
        if (*text == ' ') {
            inside = 0;
        } else if (!inside) {
            inside = 1;
            words++;
        }
    }
    return words;
}

int digit_sum(int number) {
    int total = 0;
    if (number < 0) number = -number;
    for (; number > 0; number /= 10) total += number % 10;
    return total;
}

int run_length(const char *text) {
    int best = 0, current = 0;
    for (int place = 0; text[place]; place++) {
        current = place > 0 && text[place] == text[place - 1] ? current + 1 : 1;
        best = most(best, current);
    }
    return best;
}

int overlap(int a, int b, int c, int d) { return most(0, least(b, d) - most(a, c)); }
