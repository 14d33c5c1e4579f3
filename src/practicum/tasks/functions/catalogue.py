"""The functions: what they are called, take and do, a right body and a wrong one.

Owns: `CATALOGUE`, `Function`.
Invariant: names are distinct; a wrong body differs from the right one in something that its inputs show. Pure data.
Must not know: how tasks are made of it.

Kinds of inputs, a letter for each parameter, some with a digit: i whole number (i5: often one of the list before),
n whole number from 0 (n6: up to 6), p from 1, s word (s1: often a part of the word before), t words with spaces, h with
dashes, q a word that may be a palindrome, x one in varied case, l list of whole numbers, L such a list with at least
one, w list of words, b truth value, d dict of words to whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """`inputs` has a letter for each parameter; `right` and `wrong` are lines of a body, joined by line breaks."""

    name: str
    parameters: str
    inputs: str
    does: str
    right: str
    wrong: str
    topic: str


_NUMBERS = (
    ("add", "a, b", "ii", "returns the sum of a and b", "return a + b", "return a - b"),
    ("subtract", "a, b", "ii", "returns a minus b", "return a - b", "return b - a"),
    ("multiply", "a, b", "ii", "returns the product of a and b", "return a * b", "return a + b"),
    ("square", "x", "i", "returns x squared", "return x * x", "return x + x"),
    ("cube", "x", "i", "returns x to the power of 3", "return x ** 3", "return x * 3"),
    ("double", "x", "i", "returns two times x", "return 2 * x", "return x ** 2"),
    ("negate", "x", "i", "returns x with the opposite sign", "return -x", "return abs(x)"),
    ("increment", "x", "i", "returns x plus one", "return x + 1", "return x - 1"),
    ("absolute", "x", "i", "returns the absolute value of x", "return abs(x)", "return -x"),
    ("is_even", "n", "i", "returns True if n is even, else False", "return n % 2 == 0", "return n % 2 == 1"),
    ("is_odd", "n", "i", "returns True if n is odd, else False", "return n % 2 == 1", "return n % 2 == 0"),
    ("is_positive", "n", "i", "returns True if n is greater than zero", "return n > 0", "return n < 0"),
    ("is_negative", "n", "i", "returns True if n is less than zero", "return n < 0", "return n > 0"),
    ("is_zero", "n", "i", "returns True if n is zero", "return n == 0", "return n != 0"),
    ("max2", "a, b", "ii", "returns the larger of a and b", "return max(a, b)", "return min(a, b)"),
    ("min2", "a, b", "ii", "returns the smaller of a and b", "return min(a, b)", "return max(a, b)"),
    ("max3", "a, b, c", "iii", "returns the largest of a, b and c", "return max(a, b, c)", "return max(a, b)"),
    ("min3", "a, b, c", "iii", "returns the smallest of a, b and c", "return min(a, b, c)", "return min(b, c)"),
    ("remainder", "a, b", "ip", "returns the remainder of a divided by b", "return a % b", "return a // b"),
    ("quotient", "a, b", "ip", "returns a divided by b, rounded down", "return a // b", "return a % b"),
    ("average2", "a, b", "ii", "returns the average of a and b", "return (a + b) / 2", "return a + b / 2"),
    ("divides", "a, b", "pi", "returns True if a divides b without remainder", "return b % a == 0",
     "return b // a == 0"),
    ("last_digit", "n", "n", "returns the last decimal digit of n", "return n % 10", "return n // 10"),
    ("distance", "a, b", "ii", "returns the absolute difference of a and b", "return abs(a - b)", "return a - b"),
    ("clamp_zero", "x", "i", "returns x, or 0 if x is negative", "return max(x, 0)", "return min(x, 0)"),
    ("factorial", "n", "n6", "returns the factorial of n",
     "result = 1\nfor i in range(1, n + 1):\n    result *= i\nreturn result",
     "result = 1\nfor i in range(1, n):\n    result *= i\nreturn result"),
    ("sum_to", "n", "n", "returns the sum of the whole numbers from 1 to n", "return sum(range(1, n + 1))",
     "return sum(range(1, n))"),
    ("digit_sum", "n", "n", "returns the sum of the decimal digits of n", "return sum(int(d) for d in str(n))",
     "return len(str(n))"),
    ("sign", "x", "i", "returns 1 if x is positive, -1 if x is negative, and 0 if x is zero",
     "return (x > 0) - (x < 0)", "return (x < 0) - (x > 0)"),
    ("celsius_to_fahrenheit", "c", "i", "converts c degrees Celsius to Fahrenheit", "return c * 9 / 5 + 32",
     "return c * 5 / 9 + 32"),
    ("rectangle_area", "w, h", "pp", "returns the area of a rectangle of width w and height h", "return w * h",
     "return 2 * (w + h)"),
    ("rectangle_perimeter", "w, h", "pp", "returns the perimeter of a rectangle of width w and height h",
     "return 2 * (w + h)", "return w * h"),
    ("power", "a, n", "in6", "returns a to the power of n", "return a ** n", "return a * n"),
    ("in_range", "x, low, high", "iii", "returns True if low <= x <= high", "return low <= x <= high",
     "return low < x < high"),
    ("both", "a, b", "bb", "returns True if a and b are both true", "return a and b", "return a or b"),
    ("either", "a, b", "bb", "returns True if a or b is true", "return a or b", "return a and b"),
    ("differ", "a, b", "ii", "returns True if a and b are different", "return a != b", "return a == b"),
)  # fmt: skip
_TEXTS = (
    ("reverse", "s", "s", "returns the string s reversed", "return s[::-1]", "return s[::1]"),
    ("shout", "s", "s", "returns s in upper case", "return s.upper()", "return s.lower()"),
    ("whisper", "s", "s", "returns s in lower case", "return s.lower()", "return s.upper()"),
    ("string_length", "s", "s", "returns the number of characters of s", "return len(s)", "return len(s) - 1"),
    ("first_letter", "s", "s", "returns the first character of s", "return s[0]", "return s[-1]"),
    ("last_letter", "s", "s", "returns the last character of s", "return s[-1]", "return s[0]"),
    ("repeat", "s, n", "sn", "returns s repeated n times", "return s * n", "return s + str(n)"),
    ("concat", "a, b", "ss", "returns a followed by b", "return a + b", "return b + a"),
    ("starts_with", "s, prefix", "ss1", "returns True if s starts with prefix", "return s.startswith(prefix)",
     "return s.endswith(prefix)"),
    ("ends_with", "s, suffix", "ss1", "returns True if s ends with suffix", "return s.endswith(suffix)",
     "return s.startswith(suffix)"),
    ("is_palindrome", "s", "q", "returns True if s reads the same backwards", "return s == s[::-1]",
     "return s != s[::-1]"),
    ("count_letter", "s, letter", "ss1", "returns how often letter occurs in s", "return s.count(letter)",
     "return s.find(letter)"),
    ("remove_spaces", "s", "t", "returns s without its spaces", "return s.replace(' ', '')", "return s.strip()"),
    ("word_count", "s", "t", "returns the number of words of s, which are separated by spaces",
     "return len(s.split())", "return len(s)"),
    ("capitalize", "s", "s", "returns s with its first letter in upper case", "return s.capitalize()",
     "return s.upper()"),
    ("first_word", "s", "t", "returns the first word of s", "return s.split()[0]", "return s.split()[-1]"),
    ("last_word", "s", "t", "returns the last word of s", "return s.split()[-1]", "return s.split()[0]"),
    ("greet", "name", "s", "returns 'Hello, ' followed by name and '!'", "return 'Hello, ' + name + '!'",
     "return 'Hello ' + name"),
    ("contains", "s, part", "ss1", "returns True if part occurs in s", "return part in s", "return s in part"),
    ("without_first", "s", "s", "returns s without its first character", "return s[1:]", "return s[:-1]"),
    ("without_last", "s", "s", "returns s without its last character", "return s[:-1]", "return s[1:]"),
    ("initial_upper", "s", "s", "returns the first character of s in upper case", "return s[0].upper()",
     "return s[0].lower()"),
    ("dashes_to_spaces", "s", "h", "returns s with every '-' replaced by a space", "return s.replace('-', ' ')",
     "return s.replace(' ', '-')"),
    ("join_words", "words", "w", "joins the list of words with single spaces", "return ' '.join(words)",
     "return ''.join(words)"),
    ("longest_word", "words", "w", "returns the longest word of the list; the first one of several",
     "return max(words, key=len)", "return min(words, key=len)"),
    ("same_ignoring_case", "a, b", "xx", "returns True if a and b are equal when case is ignored",
     "return a.lower() == b.lower()", "return a == b"),
)  # fmt: skip
_LISTS = (
    ("list_sum", "numbers", "l", "returns the sum of the list of numbers", "return sum(numbers)",
     "return len(numbers)"),
    ("list_length", "items", "l", "returns the number of items in the list", "return len(items)", "return sum(items)"),
    ("largest", "numbers", "L", "returns the largest number of the list", "return max(numbers)", "return min(numbers)"),
    ("smallest", "numbers", "L", "returns the smallest number of the list", "return min(numbers)",
     "return max(numbers)"),
    ("first_item", "items", "L", "returns the first item of the list", "return items[0]", "return items[-1]"),
    ("last_item", "items", "L", "returns the last item of the list", "return items[-1]", "return items[0]"),
    ("reverse_list", "items", "l", "returns a new list with the items in reverse order", "return items[::-1]",
     "return sorted(items)"),
    ("sort_list", "items", "l", "returns a new list with the items in ascending order", "return sorted(items)",
     "return items[::-1]"),
    ("sort_descending", "items", "l", "returns a new list with the items in descending order",
     "return sorted(items, reverse=True)", "return sorted(items)"),
    ("double_all", "numbers", "l", "returns a list with every number doubled", "return [2 * x for x in numbers]",
     "return numbers + numbers"),
    ("square_all", "numbers", "l", "returns a list with every number squared", "return [x * x for x in numbers]",
     "return [x + x for x in numbers]"),
    ("only_even", "numbers", "l", "returns a list of the even numbers only",
     "return [x for x in numbers if x % 2 == 0]",
     "return [x for x in numbers if x % 2 == 1]"),
    ("only_positive", "numbers", "l", "returns a list of the numbers greater than zero",
     "return [x for x in numbers if x > 0]", "return [x for x in numbers if x < 0]"),
    ("is_empty", "items", "l", "returns True if the list is empty", "return len(items) == 0", "return len(items) > 0"),
    ("contains_item", "items, x", "li5", "returns True if x is in the list", "return x in items",
     "return x not in items"),
    ("count_item", "items, x", "li5", "returns how often x occurs in the list", "return items.count(x)",
     "return len(items)"),
    ("mean", "numbers", "L", "returns the average of the numbers", "return sum(numbers) / len(numbers)",
     "return sum(numbers) // 2"),
    ("append_item", "items, x", "li", "returns a new list with x added at the end", "return items + [x]",
     "return [x] + items"),
    ("prepend_item", "items, x", "li", "returns a new list with x added at the front", "return [x] + items",
     "return items + [x]"),
    ("count_positive", "numbers", "l", "returns how many numbers are greater than zero",
     "return sum(1 for x in numbers if x > 0)", "return sum(x for x in numbers if x > 0)"),
    ("spread", "numbers", "L", "returns the largest number minus the smallest", "return max(numbers) - min(numbers)",
     "return max(numbers) + min(numbers)"),
    ("product", "numbers", "l", "returns the product of all numbers; 1 for an empty list",
     "result = 1\nfor x in numbers:\n    result *= x\nreturn result",
     "result = 0\nfor x in numbers:\n    result *= x\nreturn result"),
    ("word_lengths", "words", "w", "returns a list with the length of every word", "return [len(w) for w in words]",
     "return len(words)"),
    ("upper_all", "words", "w", "returns a list with every word in upper case", "return [w.upper() for w in words]",
     "return [w.lower() for w in words]"),
    ("drop_first", "items", "l", "returns the list without its first item", "return items[1:]", "return items[:-1]"),
    ("take_two", "items", "l", "returns the first two items of the list", "return items[:2]", "return items[2:]"),
    ("all_positive", "numbers", "l", "returns True if every number is greater than zero",
     "return all(x > 0 for x in numbers)", "return any(x > 0 for x in numbers)"),
    ("any_negative", "numbers", "l", "returns True if some number is less than zero",
     "return any(x < 0 for x in numbers)", "return all(x < 0 for x in numbers)"),
    ("dict_total", "d", "d", "returns the sum of the values of the dictionary", "return sum(d.values())",
     "return len(d)"),
    ("dict_keys", "d", "d", "returns a sorted list of the keys of the dictionary", "return sorted(d)",
     "return list(d.values())"),
    ("get_or_zero", "d, key", "ds", "returns d[key], or 0 if key is not in d", "return d.get(key, 0)",
     "return d.get(key)"),
)  # fmt: skip
CATALOGUE: tuple[Function, ...] = tuple(
    Function(*row, topic=topic)
    for topic, rows in (("numbers", _NUMBERS), ("text", _TEXTS), ("lists", _LISTS))
    for row in rows
)
