"""Orders over HTTP: POST makes one, GET lists them."""

import json

from django.db import OperationalError
from django.http import JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from shop.models import Order


@csrf_exempt
def orders(request):
    """Answer one request."""
    try:
        if request.method == "GET":
            return JsonResponse({"orders": list(Order.objects.values("item", "count"))})
        if not 1 <= (asked := json.loads(request.body))["count"] <= 100:
            return JsonResponse({"error": "count: 1 to 100"}, status=422)
        return JsonResponse({"id": Order.objects.create(**asked).id}, status=201)
    except OperationalError:
        return JsonResponse({"error": "the database is away"}, status=503)


urlpatterns = [path("orders", orders)]
