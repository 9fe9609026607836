"""One about-you question of every kind, for tests."""

SEVERAL = {
    "id": "travel",
    "kind": "several",
    "text": {"en": "How do you travel?", "ar": "كيف تتنقل؟"},
    "options": [
        {"id": "bus", "text": {"en": "By bus", "ar": "بالحافلة"}},
        {"id": "foot", "text": {"en": "On foot", "ar": "سيرًا"}},
        {"id": "bike", "text": {"en": "By bicycle", "ar": "بالدراجة"}},
    ],
}
NUMBER = {
    "id": "years",
    "kind": "number",
    "text": {"en": "How old are you?", "ar": "كم عمرك؟"},
    "low": 18,
    "high": 97,
    "step": 10,
    "required": True,
}
SCALE = {
    "id": "trust",
    "kind": "scale",
    "text": {"en": "Would you ride in such a car?", "ar": "هل تركب سيارة كهذه؟"},
    "low": 1,
    "high": 5,
    "ends": [{"en": "never", "ar": "أبدًا"}, {"en": "any day", "ar": "كل يوم"}],
}
TEXT = {"id": "why", "kind": "text", "text": {"en": "Why?", "ar": "لماذا؟"}}
CHECK = {
    "id": "blue",
    "kind": "single",
    "text": {"en": "Please choose blue.", "ar": "اختر الأزرق من فضلك."},
    "options": [
        {"id": "red", "text": {"en": "Red", "ar": "أحمر"}},
        {"id": "blue", "text": {"en": "Blue", "ar": "أزرق"}},
    ],
    "expected": "blue",
}
NOISY = [SEVERAL, NUMBER, SCALE]
"""Those that a distributed poll can ask."""
